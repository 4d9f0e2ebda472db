import { expect } from 'chai';
import { createProfiler } from '../../importer/stage.ts';
import { companies } from '../../shared/collections/companies.ts';
import { products } from '../../shared/collections/products.ts';
import { company, product } from '../support/records.ts';

describe('the profile of a version', () => {
  it('counts an array as filled where it has elements, and its elements', () => {
    const profiler = createProfiler(products);
    const barcode = { barcode: '8699622270041', skrsStatus: null };
    for (const barcodes of [[], [barcode], [barcode, barcode]]) profiler.add(product(1, { barcodes }));
    const { filled, elements } = profiler.profile();
    expect(filled['$.barcodes']).to.equal(2);
    expect(elements['$.barcodes']).to.equal(3);
  });

  it('counts neither null nor an empty text as filled, but false', () => {
    const companyProfiler = createProfiler(companies);
    for (const city of [null, '', 'İZMİR']) companyProfiler.add(company(1, { city }));
    expect(companyProfiler.profile().filled['$.city']).to.equal(1);
    const productProfiler = createProfiler(products);
    productProfiler.add(product(1, { published: false }));
    expect(productProfiler.profile().filled['$.published']).to.equal(1);
  });
});
