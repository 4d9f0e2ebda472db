// The page to read and try the API: Swagger UI over /openapi.json, all from this server.

import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FixedBody } from '../reply/reply.ts';

/** Allows only this server's files; images are inside the style sheet. No frames: users enter keys here. */
const policy = [
  ...["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", 'img-src data:'],
  ...["base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"],
].join('; ');

// Relative addresses work behind a proxy with a path prefix.
const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>medref: the API, to read and to try</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/swagger-ui.css">
<link rel="stylesheet" href="docs/page.css">
</head>
<body>
<noscript>This page needs JavaScript. <a href="openapi.json">The same as an OpenAPI document</a> does not.</noscript>
<main id="api"></main>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/page.js"></script>
</body>
</html>
`;

/** The entered key stays in the page and is never stored. */
const script = `const dark = matchMedia('(prefers-color-scheme: dark)');
const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', follow);
follow();
// HEAD has the same header fields as GET.
const withoutHead = () => ({
  wrapComponents: {
    operation: (Original, { React }) => (its) =>
      its.operation.get('method') === 'head' ? null : React.createElement(Original, its),
  },
});
SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#api',
  presets: [SwaggerUIBundle.presets.apis],
  layout: 'BaseLayout',
  deepLinking: true,
  tryItOutEnabled: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  supportedSubmitMethods: ['get'],
  validatorUrl: null,
  queryConfigEnabled: false,
  persistAuthorization: false,
  plugins: [withoutHead],
});
`;

const style = `body { margin: 0; }
noscript { display: block; padding: 2rem; font-family: sans-serif; }
/* The document has no links. On a phone, wide tables scroll. */
.swagger-ui .response-col_links { display: none; }
.swagger-ui .responses-wrapper, .swagger-ui .parameters-container { overflow-x: auto; }
`;

export const docsPage: FixedBody = {
  type: 'text/html; charset=utf-8',
  bytes: Buffer.from(html),
  headers: {
    'content-security-policy': policy,
    'cross-origin-opener-policy': 'same-origin',
  },
};

/** Returns the files of the page by name. @throws Error if the files of Swagger UI are missing */
export function docsFiles(): Readonly<Record<string, FixedBody>> {
  const folder = swaggerFolder();
  const ofSwagger = (name: string) => readFileSync(join(folder, name));
  const javascript = 'text/javascript; charset=utf-8';
  const css = 'text/css; charset=utf-8';
  return {
    'page.js': { type: javascript, bytes: Buffer.from(script) },
    'page.css': { type: css, bytes: Buffer.from(style) },
    'swagger-ui-bundle.js': { type: javascript, bytes: ofSwagger('swagger-ui-bundle.js') },
    'swagger-ui.css': { type: css, bytes: ofSwagger('swagger-ui.css') },
  };
}

/** The build contains copies of the files. The sources read them from the package, a development dependency. */
function swaggerFolder(): string {
  const copies = fileURLToPath(new URL('swagger-ui/', import.meta.url));
  if (existsSync(copies)) return copies;
  return dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));
}
