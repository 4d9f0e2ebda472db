// A worker that serves nothing: it reports an address and ends when told to; with HANGS it does neither, with STAYS it does not end.

const stays = setInterval(() => undefined, 60_000);
if (!process.env.HANGS) {
  process.send({ address: 'http://127.0.0.1:1' });
  process.on('message', (order) => {
    if (order !== 'stop' || process.env.STAYS) return;
    clearInterval(stays);
    process.disconnect();
  });
}
