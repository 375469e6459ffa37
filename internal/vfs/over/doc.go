// Package over lays a folder that can be written over one that cannot: what is read comes from the
// upper one where it has it, else from the lower one; all that is written goes to the upper one, and
// the lower one stays as it is. So a store on a read-only medium that lacks its log or its index can
// be opened: both are made in the upper folder.
//
// One handle of one process uses it. Locks and the shared page are the upper folder's alone: those of
// the lower one, if there are any, belong to others.
package over
