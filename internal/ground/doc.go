// Package ground looks at a store that perhaps cannot be opened. Look opens it read-only and
// verifies it. Where opening fails, Closed says what the ground lacks: config, checkpoint, log,
// index, and which files are no documents. It needs neither log nor index, and changes nothing.
//
// What is in the place of a folder or a file of the store and is none, a link, a FIFO, a device,
// is told before anything is opened, and never opened itself.
package ground
