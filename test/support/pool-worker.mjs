// A worker that serves nothing. It reports an address, and ends at the message "stop".
// With HANGS it does neither; with STAYS it does not end.

const stays = setInterval(() => undefined, 60_000);
if (!process.env.HANGS) {
  process.send({ address: 'http://127.0.0.1:1' });
  process.on('message', (order) => {
    if (order !== 'stop' || process.env.STAYS) return;
    clearInterval(stays);
    process.disconnect();
  });
}
