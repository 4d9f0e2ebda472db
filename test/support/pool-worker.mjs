// A worker of a pool that serves nothing: it says that it answers, and ends when it is told; where the environment has
// HANGS, it does neither, and where it has STAYS, it does not end.

const stays = setInterval(() => undefined, 60_000);
if (!process.env.HANGS) {
  process.send({ answersAt: 'http://127.0.0.1:1' });
  process.on('message', (order) => {
    if (order !== 'stop' || process.env.STAYS) return;
    clearInterval(stays);
    process.disconnect();
  });
}
