# sync_sqlite.py: makes products.db the same as the products of the service. Run it once a day, with Python 3.8 or newer.
# In: MEDREF_URL and MEDREF_KEY. Out: the table product, and the version and digest of all that is in it.

import base64, gzip, hashlib, json, os, re, sqlite3, time
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

class Staying(HTTPRedirectHandler):
    """Goes to no other address: the key would go with it."""
    def redirect_request(self, *_):
        return None

def get(path, accept='application/json'):
    """An answer of the service; asks again where the service says when. Raises HTTPError."""
    headers = {'Authorization': 'Bearer ' + os.environ['MEDREF_KEY'], 'Accept': accept, 'Accept-Encoding': 'gzip'}
    for tries in range(1, 6):
        try:
            return build_opener(Staying).open(Request(os.environ['MEDREF_URL'] + path, headers=headers), timeout=60)
        except HTTPError as error:
            if error.code not in (429, 503) or tries == 5:
                raise
            time.sleep(int(error.headers.get('Retry-After', 5)))

def body(response):
    return gzip.open(response) if response.headers['Content-Encoding'] == 'gzip' else response

def text_of(record):
    """A record as the service writes it: the digest is of these bytes."""
    text = json.dumps(record, ensure_ascii=False, separators=(',', ':'))
    return re.sub('[\ud800-\udfff]', lambda lone: f'\\u{ord(lone[0]):04x}', text)

def put(records):
    rows = ((record['product']['id'], text_of(record)) for record in records)
    database.executemany('INSERT OR REPLACE INTO product VALUES (?, ?)', rows)

def is_proven(digest):
    """Whether the copy is what a digest is of, also where somebody has changed it."""
    total = 0
    for (record,) in database.execute('SELECT record FROM product'):
        total += int.from_bytes(hashlib.sha256(record.encode()).digest(), 'big')
    return base64.b64encode((total % 2**256).to_bytes(32, 'big')).decode() == digest

def stated(response):
    """The version and the digest that an answer names."""
    return int(response.headers['Medref-Version']), response.headers['Medref-Digest'].split('set=:')[1].rstrip(':')

def apply_changes(since):
    """What changed since a version; None where that is not known any more, or does not lead to what the service has."""
    count, page, pinned = 0, 1, ''
    while page:
        try:
            with get(f'/products/changes?since={since}{pinned}&page={page}') as response:
                version, digest = stated(response)
                answer = json.load(body(response))
        except HTTPError as error:
            if error.code != 410:
                raise
            return None
        put(it['record'] for it in answer['data'] if it['change'] != 'removed')
        removed = ((it['id'],) for it in answer['data'] if it['change'] == 'removed')
        database.executemany('DELETE FROM product WHERE id = ?', removed)
        count += len(answer['data'])
        pinned = f'&version={version}'  # all pages of one version
        page = page + 1 if 'next' in answer['_links'] else None
    return (version, digest, f'{count} changes') if is_proven(digest) else None

def read_whole_list():
    database.execute('DELETE FROM product')
    with get('/products', 'application/x-ndjson') as response:
        version, digest = stated(response)
        put(json.loads(line) for line in body(response))
    if not is_proven(digest):
        raise RuntimeError(f'The copy is not version {version}: its digest differs.')
    return version, digest, 'whole list'

database = sqlite3.connect('products.db', isolation_level=None)
# All of it is one transaction: where this program dies, the copy stays as it was.
database.execute('BEGIN IMMEDIATE')
database.execute('CREATE TABLE IF NOT EXISTS product (id INTEGER PRIMARY KEY, record TEXT NOT NULL)')
database.execute('CREATE TABLE IF NOT EXISTS copy (version INTEGER NOT NULL, digest TEXT)')
held = database.execute('SELECT version FROM copy').fetchone()
version, digest, done = (held and apply_changes(held[0])) or read_whole_list()
database.execute('DELETE FROM copy')
database.execute('INSERT INTO copy VALUES (?, ?)', (version, digest))
database.execute('COMMIT')
(count,) = database.execute('SELECT count(*) FROM product').fetchone()
print(f'version {version}: {done}, {count} records')
