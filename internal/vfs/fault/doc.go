// Package fault makes operations on a vfs.FS fail as a test requires.
//
// A rule is called for every operation and may return an error, which the caller then gets, and the
// operation is not done. Two kinds of errors do more:
//
//   - Short(n, err): a read or write does its first n bytes, then fails with err
//     (nil: only short).
//   - After(err): the operation is done, and the caller gets err.
//
// A Sync, Datasync or Barrier that fails loses its data if the file system inside is vfs/crash: the
// data stay in the cache, marked as clean, and a later successful sync does not make them durable.
package fault
