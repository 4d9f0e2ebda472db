// Bearer keys (RFC 6750): a request is answered when it carries a key that is known, not revoked and not expired.

import Boom from '@hapi/boom';
import type { Plugin, Server } from '@hapi/hapi';
import { noteRoute } from '../answers/traced-response.ts';
import type { ApiKeyring } from '../reads/keyring.ts';
import { sentKey } from '../requests/sent-key.ts';

/** Makes `bearer` the authentication of every route that does not opt out. */
export const bearerKeys: Plugin<{ keyring: ApiKeyring }> = {
  name: 'bearer-keys',
  register(server: Server, { keyring }: { keyring: ApiKeyring }) {
    server.auth.scheme('bearer-key', () => ({
      async authenticate(request, h) {
        noteRoute(request);
        const sent = sentKey(request.raw.req);
        const key = sent === undefined ? null : await keyring.find(sent);
        if (!key) throw refusal();
        return h.authenticated({ credentials: { app: { key } } });
      },
    }));
    server.auth.strategy('bearer', 'bearer-key');
    server.auth.default('bearer');
  },
};

/** The same for every cause, so that nobody learns which keys exist. */
function refusal(): Boom.Boom {
  const error = Boom.unauthorized('This needs a valid key, sent as "Authorization: Bearer <key>".');
  error.output.headers['WWW-Authenticate'] = 'Bearer realm="medref"';
  return error;
}
