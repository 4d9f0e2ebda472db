// In: the address of a service. Out: how many products `all()` gives, and what that takes of memory, as JSON on stdout.

import { createClient } from '../../client/client.ts';

const { products } = createClient({ baseUrl: process.argv[2] ?? '', key: 'key' });
let count = 0;
for await (const { published } of products.all()) if (published) count += 1;
process.stdout.write(JSON.stringify({ count, maxRss: process.resourceUsage().maxRSS }));
