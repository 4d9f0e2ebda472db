// The lock of a collection, as staging knows it.

export { type BegunVersion, type Held, heldReply, LockLostError } from '../../shared/store/scripts.ts';
