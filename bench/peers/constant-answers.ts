// In: answers as they were on the wire. Out: a file with them, and from that file what a server of constants sends.

import { readFile, writeFile } from 'node:fs/promises';
import type { WireAnswer } from '../answers.ts';

/** One answer that is the same each time. */
export interface ConstantAnswer {
  /** As hapi writes paths: `/page`, `/record/{id}`. */
  readonly path: string;
  readonly status: number;
  readonly contentType: string | null;
  /** All others that the answer had, but for those that HTTP itself needs. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer;
}

/** Fields that whoever sends the answer writes anew. */
const ofTheConnection = [
  'content-length',
  'content-type',
  'connection',
  'date',
  'keep-alive',
  'transfer-encoding',
];

/** Writes answers to a file, each with the path where it is to be had. */
export async function writeConstants(file: string, answers: ReadonlyMap<string, WireAnswer>): Promise<void> {
  const constants = [...answers].map(([path, { status, headers, body }]) => ({
    path,
    status,
    contentType: headers['content-type'] ?? null,
    headers: Object.entries(headers)
      .filter(([name]) => !ofTheConnection.includes(name))
      .map(([name, value]) => [name, String(value)]),
    body: body.toString('base64'),
  }));
  await writeFile(file, JSON.stringify(constants));
}

/** Reads what {@link writeConstants} wrote. */
export async function readConstants(file: string): Promise<ConstantAnswer[]> {
  const constants = JSON.parse(await readFile(file, 'utf8')) as (Omit<ConstantAnswer, 'body'> & {
    body: string;
  })[];
  return constants.map((it) => ({ ...it, body: Buffer.from(it.body, 'base64') }));
}
