// Package fault makes operations on a vfs.FS fail as a test wants it.
//
// A rule sees every operation and may answer with an error, which the caller
// then gets instead of the operation being done. Two kinds of errors say more:
//
//   - Short(n, err): a read or write does its first n bytes, then fails with err
//     (nil: only short).
//   - After(err): the operation is done, and err is what the caller is told.
//
// A Sync, Datasync or Barrier that fails loses what it was about, when the file
// system inside is vfs/crash: it stays in the cache, looks clean, and a sync
// that succeeds later does not make it durable.
package fault
