// The keys of a version as the scripts take them: in lists, over all of its parts.

import type { CollectionKeys, ContentName } from '../../shared/store/keys.ts';

/** What a version's content is stored under. */
export function contentKeys(keys: CollectionKeys, name: ContentName): string[] {
  return keys.parts.flatMap((part) => Object.values<string>(part.content(name)));
}

/** What is there only while a version is staged. */
export function workspaceKeys(keys: CollectionKeys, name: ContentName): string[] {
  return keys.parts.flatMap((part) => Object.values<string>(part.workspace(name)));
}

/** The change sets of a version, one for each part. */
export function changeSetKeys(keys: CollectionKeys, name: ContentName): string[] {
  return keys.parts.map((part) => part.changeSet(name));
}

/** All that an import stages under a name. */
export function stagedKeys(keys: CollectionKeys, name: ContentName): string[] {
  return [...contentKeys(keys, name), ...workspaceKeys(keys, name), ...changeSetKeys(keys, name)];
}
