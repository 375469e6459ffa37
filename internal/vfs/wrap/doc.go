// Package wrap puts a hook around every operation of a vfs.FS. The recorder,
// the fault injector and the scheduler are hooks.
//
// A hook gets the operation and a function that carries it out. It may look, call
// it once, several times or never, shorten the operation by lowering Op.Size
// first, and decides what error the caller sees. A short read or write without
// an error of the hook's own becomes io.ErrUnexpectedEOF or io.ErrShortWrite, as
// io.ReaderAt and io.WriterAt demand.
package wrap
