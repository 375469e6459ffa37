// Package fault makes operations on a vfs.FS fail as a test requires.
//
// A rule is called for every operation. If it returns an error, the operation is not executed, and the caller gets the
// error. Two kinds of errors do more:
//
//   - Short(n, err): a read or write processes its first n bytes, then fails with err (nil: it is only short).
//   - After(err): the operation is executed, and the caller gets err.
//
// A Sync, Datasync or Barrier that fails loses its data if the file system inside is vfs/crash: the
// data stay in the cache, marked as clean, and a later successful sync does not make them durable.
package fault
