// Companies that make or sell medicinal products.

import Joi from 'joi';
import { defineCollection } from './define.ts';
import { id, name, text, textOrNull } from './rules.ts';

export interface Company {
  id: number;
  name: string;
  officialName: string;
  /** `""` if there is none. */
  website: string;
  fax: string | null;
  phone: string | null;
  email: string | null;
  address: string | null;
  city: string | null;
  district: string | null;
}

export const companies = defineCollection<Company>({
  name: 'companies',
  singular: 'company',
  describe: 'Companies that make or sell medicinal products.',
  id: ['id'],
  searchBy: {
    name: { type: 'prefix', path: ['name'], describe: 'Only companies whose name begins with this.' },
  },
  schema: Joi.object<Company, true>({
    id: id.description('Stays the same from version to version.'),
    name: name.description('The usual name.'),
    officialName: text.description('The registered name; may be `""`.'),
    website: text.description('`""` if there is none.'),
    fax: textOrNull.description('`null` if unknown, as the members below.'),
    phone: textOrNull.description('Telephone number.'),
    email: textOrNull.description('Email address.'),
    address: textOrNull.description('Street and number.'),
    city: textOrNull.description('City or province.'),
    district: textOrNull.description('Part of the city.'),
  }).example({
    id: 6,
    name: 'PİCİVLAN İLAÇ',
    officialName: 'PİCİVLAN İLAÇ SAN. TİC. LTD. ŞTİ.',
    website: '',
    fax: '+90 232 000 68 45',
    phone: '+90 232 000 84 64',
    email: 'info@picivlan.example',
    address: 'GÜL SOKAK NO: 11',
    city: 'İZMİR',
    district: 'ÇİĞLİ',
  }),
});
