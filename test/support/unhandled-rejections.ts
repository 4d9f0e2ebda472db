// Ends the process if a rejected promise is not handled, as Node does. Mocha alone would report nothing.

process.on('unhandledRejection', (reason) => {
  throw reason;
});
