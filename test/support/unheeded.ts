// A promise that is rejected and that nobody heeds ends a process of Node. Mocha alone would say nothing of it.

process.on('unhandledRejection', (reason) => {
  throw reason;
});
