# sync_sqlite.py: keeps a copy of the products in products.db, with its version and digest. Run it once a day.
# It needs Python 3.8 or newer. Settings: MEDREF_URL and MEDREF_KEY.

import base64, gzip, hashlib, json, os, re, sqlite3, time
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

class Staying(HTTPRedirectHandler):
    """Follows no redirect, because it would receive the key."""
    def redirect_request(self, *_):
        return None

def get(path, accept='application/json'):
    """Returns a response; retries if the service says when. Raises HTTPError."""
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
    """Returns the bytes of a record as the service writes them; the digest covers them."""
    text = json.dumps(record, ensure_ascii=False, separators=(',', ':'))
    return re.sub('[\ud800-\udfff]', lambda lone: f'\\u{ord(lone[0]):04x}', text)

def put(records):
    rows = ((record['product']['id'], text_of(record)) for record in records)
    database.executemany('INSERT OR REPLACE INTO product VALUES (?, ?)', rows)

def is_proven(digest):
    """Returns whether the copy matches a digest; it does not if a record was altered."""
    total = 0
    for (record,) in database.execute('SELECT record FROM product'):
        total += int.from_bytes(hashlib.sha256(record.encode()).digest(), 'big')
    return base64.b64encode((total % 2**256).to_bytes(32, 'big')).decode() == digest

def stated(response):
    """Returns the version and the digest in a response."""
    return int(response.headers['Medref-Version']), response.headers['Medref-Digest'].split('set=:')[1].rstrip(':')

def apply_changes(since):
    """Applies the changes since a version; None if they are no longer kept, or do not match the digest."""
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
# One transaction: if this program dies, the copy stays unchanged.
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
