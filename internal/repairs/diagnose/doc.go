// Package diagnose examines a store that perhaps cannot be opened. Look opens it read-only and
// verifies it. If opening fails, Closed reports what is missing or damaged: config, checkpoint,
// log, index, and which files are not documents. Closed needs neither log nor index, and changes
// nothing.
//
// Links, FIFOs, devices and other special files in the place of a folder or a file of the store are
// reported before anything is opened, and are never opened themselves.
package diagnose
