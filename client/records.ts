// The records of medref, as a consumer gets them; the tests hold them equal to what an import validates.

/** Something that a record names. */
export interface Named {
  id: number;
  name: string;
}

/** A barcode that a product has or had. */
export interface Barcode {
  /** 12 or 13 digits. */
  barcode: string;
  /** Status in the national list; `null` when unlisted. */
  skrsStatus: string | null;
}

/** A medicinal product. */
export interface Product {
  product: Named;
  drug: Named;
  drugform: Named;
  barcodes: Barcode[];
  /** `false` is only a flag: the product is listed and found like any other. */
  published: boolean;
}

/** A drug: each one of all products once. */
export interface Drug {
  drug: Named;
}

/** A company. */
export interface Company {
  id: number;
  name: string;
  officialName: string;
  /** `""` when there is none. */
  website: string;
  fax: string | null;
  phone: string | null;
  email: string | null;
  address: string | null;
  city: string | null;
  district: string | null;
}

/** A record of any collection. */
export type AnyRecord = Product | Drug | Company;

/** The id of a record, whatever it is a record of. */
export function idOf(record: AnyRecord): number {
  const { product, drug, id } = record as Partial<Product & Company>;
  return (product ?? drug)?.id ?? (id as number);
}
