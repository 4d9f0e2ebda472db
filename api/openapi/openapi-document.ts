// The API as an OpenAPI 3.1 document, made of the collections and of the tables of parameters that the routes read.

import type { Collection } from '../../shared/collections/define.ts';
import { type Part, parameterComponents } from './openapi-parameters.ts';
import { pathsOf, takenParameters } from './openapi-paths.ts';
import { headerComponents, responseComponents } from './openapi-responses.ts';
import { changeSchema, listOf, nounOf, recordSchema, reference, sharedSchemas } from './openapi-schemas.ts';

const description = `Read-only reference data. Every list is a **version**: complete, numbered, and replaced as a whole.

- Every data route asks for a key, sent as \`Authorization: Bearer <key>\`. The operator of the service gives keys.
- Every route answers \`GET\`, and \`HEAD\` with the same headers and no body.
- A parameter that is unknown, empty, malformed or given twice is an error that names it.
- A request is judged in this order: path, key, method, parameters, version, record.
- Errors have one form, and their message is a sentence that says what is wrong.`;

/** The document as JSON text. */
export function openApiText(collections: readonly Collection[]): string {
  return JSON.stringify(openApiDocument(collections));
}

function openApiDocument(collections: readonly Collection[]): Part {
  return {
    openapi: '3.1.0',
    info: {
      title: 'medref',
      // Of the API, not of the release: what a client relies on stays as long as this number does.
      version: '1',
      summary: 'Medicinal products, drugs and companies, by pages, by search and by change.',
      description,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    // Relative to where the document was had, so that it is right behind any proxy.
    servers: [{ url: '.', description: 'Where this document is' }],
    security: [{ key: [] }],
    tags: [...collections.map(collectionTag), ...openTags],
    paths: pathsOf(collections),
    components: {
      securitySchemes: {
        key: { type: 'http', scheme: 'bearer', description: 'The key, as the operator gave it.' },
      },
      parameters: parameterComponents(takenParameters),
      headers: headerComponents,
      responses: responseComponents,
      schemas: {
        ...Object.fromEntries(collections.flatMap(collectionSchemas)),
        ...sharedSchemas,
        KeptVersionList: listOf(reference('KeptVersion')),
      },
    },
  };
}

const openTags = [
  { name: 'Health', description: 'For what watches the service; without a key' },
  { name: 'Description', description: 'The API in words that programs read; without a key' },
];

function collectionTag(collection: Collection): Part {
  return { name: nounOf(collection).many, description: collection.describe };
}

function collectionSchemas(collection: Collection): [name: string, Part][] {
  const { one } = nounOf(collection);
  return [
    [one, recordSchema(collection)],
    [`${one}List`, listOf(reference(one))],
    [`${one}Change`, changeSchema(reference(one))],
    [`${one}ChangeList`, listOf(reference(`${one}Change`))],
  ];
}
