// page.js - loads the document next to this page and shows it. The key of ?token= is sent as every client sends it.
(async () => {
	const token = new URLSearchParams(location.search).get('token') ?? '';
	const prefix = location.pathname.replace(/\/v1\/openapi(\.html)?$/, '');
	const headers = token ? { Authorization: `Bearer ${token}` } : {};
	const explorer = document.getElementById('explorer');

	const answer = await fetch(`${prefix}/v1/openapi.json`, { headers });
	if (!answer.ok) {
		explorer.className = 'trouble';
		explorer.textContent = `The document could not be loaded: ${answer.status} ${await answer.text()}`;
		return;
	}
	const spec = await answer.json();
	spec.servers = [{ url: prefix || '/', description: 'this server' }];
	const ui = SwaggerUIBundle({
		spec,
		dom_id: '#explorer',
		deepLinking: true,
		displayRequestDuration: true,
		docExpansion: 'list',
		defaultModelsExpandDepth: 0,
		filter: true,
		tryItOutEnabled: true,
		validatorUrl: 'none',
		onComplete: () => {
			if (token) ui.preauthorizeApiKey('BearerAuth', token);
			document.body.dataset.ready = 'yes';
		},
	});
})();
