// Drugs: the active side of products, derived from them.

import Joi from 'joi';
import type { Collection } from './collection.ts';
import { type Named, named } from './rules.ts';

export interface Drug {
  drug: Named;
}

export const drugs: Collection = {
  name: 'drugs',
  idPath: ['drug', 'id'],
  namePath: ['drug', 'name'],
  schema: Joi.object<Drug, true>({ drug: named }).example({ drug: { id: 3, name: 'NÖGEMRÜN' } }),
};
