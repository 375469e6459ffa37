// Package over overlays a read-only folder with a writable one: files are read from the upper folder if it has them,
// else from the lower one; all writes go to the upper folder, and the lower one never changes. So a store on a
// read-only medium that lacks its log or its index can be opened: both are created in the upper folder.
//
// An overlay is used by one handle of one process. Locks and the shared page are in the upper folder only: those in the
// lower folder, if any, belong to other processes.
package over
