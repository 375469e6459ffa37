// Package wrap runs a hook around every operation of a vfs.FS. The recorder, the fault injector and the scheduler are
// hooks.
//
// A hook gets the operation and a function that executes it. It may inspect the operation, call the function once,
// several times or never, and shorten the operation by lowering Op.Size first. It decides which error the caller gets.
// A short read or write without an error of the hook becomes io.ErrUnexpectedEOF or io.ErrShortWrite, as io.ReaderAt
// and io.WriterAt require.
package wrap
