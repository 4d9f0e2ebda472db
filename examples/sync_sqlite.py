# sync_sqlite.py: keeps a copy of products, drugs and companies in medref.db, with versions and digests. Run it once a day.
# It needs Python 3.8 or newer. Settings: MEDREF_URL and MEDREF_KEY.

import base64, gzip, hashlib, json, os, re, sqlite3, time
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

if not (os.environ.get('MEDREF_URL') and os.environ.get('MEDREF_KEY')):
    raise SystemExit('Set MEDREF_URL and MEDREF_KEY.')

# `record` is the JSON text that the service sent: the digest covers it.
SCHEMA = '''
CREATE TABLE IF NOT EXISTS products (id INTEGER PRIMARY KEY, name TEXT NOT NULL, drug_id INTEGER NOT NULL,
  drugform TEXT NOT NULL, published INTEGER NOT NULL, record TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS barcodes (product_id INTEGER NOT NULL, barcode TEXT NOT NULL, skrs_status TEXT);
CREATE TABLE IF NOT EXISTS drugs (id INTEGER PRIMARY KEY, name TEXT NOT NULL, record TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS companies (id INTEGER PRIMARY KEY, name TEXT NOT NULL, official_name TEXT NOT NULL,
  website TEXT NOT NULL, fax TEXT, phone TEXT, email TEXT, address TEXT, city TEXT, district TEXT, record TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS copies (collection TEXT PRIMARY KEY, version INTEGER NOT NULL, digest TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS products_by_name ON products (name);
CREATE INDEX IF NOT EXISTS products_by_drug ON products (drug_id);
CREATE INDEX IF NOT EXISTS barcodes_by_barcode ON barcodes (barcode);
CREATE INDEX IF NOT EXISTS barcodes_by_product ON barcodes (product_id);
'''

class Staying(HTTPRedirectHandler):
    """Follows no redirect, because it would receive the key."""
    def redirect_request(self, *_):
        return None

def get(path, accept='application/json', **fields):
    """Returns a response; retries if the service says when. Raises HTTPError for 410, and ends the program for other errors."""
    headers = {'Authorization': 'Bearer ' + os.environ['MEDREF_KEY'], 'Accept': accept, 'Accept-Encoding': 'gzip', **fields}
    for tries in range(1, 6):
        try:
            return build_opener(Staying).open(Request(os.environ['MEDREF_URL'] + path, headers=headers), timeout=60)
        except HTTPError as error:
            if error.code == 410:
                raise
            if error.code not in (429, 503) or tries == 5:
                raise SystemExit(f'{path}: {error.code}: {error.read().decode(errors="replace")[:500]}')
            time.sleep(int(error.headers.get('Retry-After', 5)))
        except URLError as error:
            raise SystemExit(f"{os.environ['MEDREF_URL']} cannot be reached: {error.reason}")

def body(response):
    return gzip.open(response) if response.headers['Content-Encoding'] == 'gzip' else response

def text_of(record):
    """Returns a record as the service writes it."""
    text = json.dumps(record, ensure_ascii=False, separators=(',', ':'))
    return re.sub('[\ud800-\udfff]', lambda lone: f'\\u{ord(lone[0]):04x}', text)

def stored(text):
    """Returns a text as SQLite can store it: lone surrogates are not characters."""
    return text and re.sub('[\ud800-\udfff]', '\ufffd', text)

def put_product(record):
    its, drug = record['product'], record['drug']
    row = (its['id'], stored(its['name']), drug['id'], stored(record['drugform']['name']), record['published'])
    database.execute('INSERT OR REPLACE INTO products VALUES (?, ?, ?, ?, ?, ?)', (*row, text_of(record)))
    database.execute('DELETE FROM barcodes WHERE product_id = ?', (its['id'],))
    barcodes = ((its['id'], it['barcode'], stored(it['skrsStatus'])) for it in record['barcodes'])
    database.executemany('INSERT INTO barcodes VALUES (?, ?, ?)', barcodes)

def put_drug(record):
    row = (record['drug']['id'], stored(record['drug']['name']), text_of(record))
    database.execute('INSERT OR REPLACE INTO drugs VALUES (?, ?, ?)', row)

def put_company(record):
    row = (record['id'], *(stored(record[name]) for name in list(record)[1:10]), text_of(record))
    database.execute('INSERT OR REPLACE INTO companies VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)', row)

PUT = {'products': put_product, 'drugs': put_drug, 'companies': put_company}

def is_proven(collection, digest):
    """Returns whether the copy matches a digest; it does not if a record was altered."""
    total = 0
    for (record,) in database.execute(f'SELECT record FROM {collection}'):
        total += int.from_bytes(hashlib.sha256(record.encode()).digest(), 'big')
    return base64.b64encode((total % 2**256).to_bytes(32, 'big')).decode() == digest

def stated(response):
    """Returns the version and the digest in a response."""
    return int(response.headers['Medref-Version']), response.headers['Medref-Digest'].split('set=:')[1].rstrip(':')

def apply_changes(collection, since):
    """Applies the changes since a version; None if they are no longer kept, or do not match the digest."""
    count, page, pinned = 0, 1, ''
    while page:
        try:
            with get(f'/{collection}/changes?since={since}{pinned}&page={page}') as response:
                version, digest = stated(response)
                answer = json.load(body(response))
        except HTTPError as error:
            if error.code != 410:
                raise
            return None
        for it in answer['data']:
            if it['change'] == 'removed':
                database.execute(f'DELETE FROM {collection} WHERE id = ?', (it['id'],))
                if collection == 'products':
                    database.execute('DELETE FROM barcodes WHERE product_id = ?', (it['id'],))
            else:
                PUT[collection](it['record'])
        count += len(answer['data'])
        pinned = f'&version={version}'  # all pages of one version
        page = page + 1 if 'next' in answer['_links'] else None
    return (version, digest, f'{count} changes') if is_proven(collection, digest) else None

def read_whole_list(collection):
    database.execute(f'DELETE FROM {collection}')
    if collection == 'products':
        database.execute('DELETE FROM barcodes')
    with get(f'/{collection}', 'application/x-ndjson') as response:
        version, digest = stated(response)
        for line in body(response):
            PUT[collection](json.loads(line))
    if not is_proven(collection, digest):
        raise RuntimeError(f'The copy of {collection} is not version {version}: its digest differs.')
    return version, digest, 'whole list'

database = sqlite3.connect('medref.db', isolation_level=None)
database.executescript(SCHEMA)
# One transaction: if this program dies, the copy stays unchanged.
database.execute('BEGIN IMMEDIATE')
lines = []
for collection in PUT:
    held = database.execute('SELECT version FROM copies WHERE collection = ?', (collection,)).fetchone()
    version, digest, done = (held and apply_changes(collection, held[0])) or read_whole_list(collection)
    database.execute('INSERT OR REPLACE INTO copies VALUES (?, ?, ?)', (collection, version, digest))
    (count,) = database.execute(f'SELECT count(*) FROM {collection}').fetchone()
    lines.append(f'{collection}: version {version}: {done}, {count} records')
database.execute('COMMIT')
print('\n'.join(lines))
for collection, version, digest in database.execute('SELECT * FROM copies').fetchall():
    # The operator then sees which version you have.
    get(f'/{collection}/changes?since={version}&per-page=1', **{'Medref-Have': f'{version} {digest}'}).close()
