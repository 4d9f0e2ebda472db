// Bearer keys (RFC 6750): a request is answered when it carries a key that is known, not revoked and not expired, and that
// was made for the collection of its path.

import type { IncomingMessage } from 'node:http';
import Boom from '@hapi/boom';
import type { Plugin, Server } from '@hapi/hapi';
import type { ApiKey } from '../../shared/store/api-keys.ts';
import { type Caller, refusalOf } from '../answers/rate-fields.ts';
import { noteRoute } from '../answers/traced-response.ts';
import type { ApiKeyring } from '../reads/keyring.ts';
import type { Rates } from '../reads/rates.ts';
import { clientAddressOf, networkOf } from '../requests/client-address.ts';
import { sentKey } from '../requests/sent-key.ts';

/** What the plugin is given. */
export interface BearerKeyOptions {
  readonly keyring: ApiKeyring;
  /** Without it, no key has a rate. */
  readonly rates?: Rates | undefined;
}

/** Makes `bearer` the authentication of every route that does not opt out. */
export const bearerKeys: Plugin<BearerKeyOptions> = {
  name: 'bearer-keys',
  register(server: Server, { keyring, rates }: BearerKeyOptions) {
    server.auth.scheme('bearer-key', () => ({
      async authenticate(request, h) {
        noteRoute(request);
        const { req } = request.raw;
        const sent = sentKey(req);
        const key =
          sent === undefined ? null : await keyring.find(sent, () => networkOf(clientAddressOf(req)));
        if (!key) throw refusal();
        const caller: Caller = { key, charge: rates?.charge(key) ?? null };
        const credentials = { app: caller };
        const wrongCollection = otherCollection(key, request.route.path);
        if (wrongCollection) return h.unauthenticated(wrongCollection, { credentials });
        // 304 is free, and it is not known yet whether this is one: who answers charges it.
        const refused = isConditional(req) ? null : refusalOf(caller);
        return refused ? h.unauthenticated(refused, { credentials }) : h.authenticated({ credentials });
      },
    }));
    server.auth.strategy('bearer', 'bearer-key');
    server.auth.default('bearer');
  },
};

function isConditional({ headers }: IncomingMessage): boolean {
  return headers['if-none-match'] !== undefined || headers['if-modified-since'] !== undefined;
}

/** The same for every cause, so that nobody learns which keys exist. */
function refusal(): Boom.Boom {
  const error = Boom.unauthorized('This needs a valid key, sent as "Authorization: Bearer <key>".');
  error.output.headers['WWW-Authenticate'] = 'Bearer realm="medref"';
  return error;
}

/** 403 for a key that was made for other collections; the path of every route that asks for a key begins with one. */
function otherCollection({ collections }: ApiKey, path: string): Boom.Boom | null {
  if (!collections) return null;
  const [, collection = ''] = path.split('/');
  if (collections.includes(collection)) return null;
  return Boom.forbidden(`This key was made for ${collections.join(' and ')}, and not for ${collection}.`);
}
