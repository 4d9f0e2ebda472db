// Valid records for tests, made from an id and the values that a test changes.

import type { Company } from '../../shared/collections/companies.ts';
import type { Product } from '../../shared/collections/products.ts';

/** Returns a valid product. */
export function product(id: number, changes: Partial<Product> = {}): Product {
  return {
    product: { id, name: `DRUG ${id} 10 MG TABLET (20 TABLET)` },
    drug: { id, name: `DRUG ${id}` },
    drugform: { id: 1, name: '10 MG TABLET' },
    barcodes: [{ barcode: String(8_690_000_000_000 + id), skrsStatus: 'Aktif' }],
    published: true,
    ...changes,
  };
}

/** Returns valid products with the ids from 1 to `count`. */
export function products(count: number): Product[] {
  return Array.from({ length: count }, (_, i) => product(i + 1));
}

/** Returns a valid company. */
export function company(id: number, changes: Partial<Company> = {}): Company {
  return {
    id,
    name: `FIRM ${id}`,
    officialName: `FIRM ${id} LTD.`,
    website: '',
    fax: null,
    phone: '+90 212 000 00 00',
    email: null,
    address: null,
    city: 'İSTANBUL',
    district: null,
    ...changes,
  };
}

/** Returns valid companies with the ids from 1 to `count`. */
export function companies(count: number): Company[] {
  return Array.from({ length: count }, (_, i) => company(i + 1));
}
