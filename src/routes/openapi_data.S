/* openapi_data.S - the files of api/ inside the program; openapi.c reads them. */
	.section .rodata

	.macro EMBED name, file
	.global \name, \name\()_end
	.balign 16
\name:
	.incbin "\file"
\name\()_end:
	.byte 0
	.endm

	EMBED openapi_document, OPENAPI_DOCUMENT
	EMBED openapi_page, OPENAPI_PAGE
	EMBED openapi_page_gzip, OPENAPI_PAGE_GZIP

	.section .note.GNU-stack,"",@progbits
