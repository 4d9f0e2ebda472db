// The list of collections: settings, commands and routes are derived from it.

import type { Collection } from './collection.ts';
import { companies } from './company.ts';
import { products } from './product.ts';

export const collections: readonly Collection[] = [products, companies];
