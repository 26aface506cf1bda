#include "routes/pieces.h"

#include "base/mem.h"
#include "base/utf8.h"

/* Everything of BYTES but an unfinished end, which is held. */
static void cut(struct pieces *p, const unsigned char *bytes, size_t len, on_piece *give, void *ctx)
{
	while (len) {
		size_t n = MIN(len, (size_t)PIECE_MAX);
		size_t open = utf8_unfinished(bytes, n);

		if (n == len) {
			memcpy(p->held, bytes + n - open, open);
			p->held_len = (unsigned)open;
			len -= open;
		}
		n -= open;
		if (n) give(ctx, bytes, n);
		bytes += n;
		len -= n;
	}
}

void pieces_add(struct pieces *p, const void *bytes, size_t len, on_piece *give, void *ctx)
{
	const unsigned char *from = bytes;
	unsigned char joined[PIECE_MAX];
	size_t held = p->held_len, taken = MIN(len, sizeof joined - held);

	if (!len) return;
	if (held) {
		/* The held begin and its rest have to lie side by side once. */
		memcpy(joined, p->held, held);
		memcpy(joined + held, from, taken);
		p->held_len = 0;
		if (taken == len) {
			cut(p, joined, held + taken, give, ctx);
			return;
		}
		/* There is more: an unfinished end belongs to the next piece. */
		taken -= utf8_unfinished(joined, held + taken);
		give(ctx, joined, held + taken);
		from += taken;
		len -= taken;
	}
	cut(p, from, len, give, ctx);
}

void pieces_end(struct pieces *p, on_piece *give, void *ctx)
{
	if (p->held_len) give(ctx, p->held, p->held_len);
	p->held_len = 0;
}
