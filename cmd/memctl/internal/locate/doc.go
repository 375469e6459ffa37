// Package locate finds the store that a command is about when none was named: the nearest folder,
// from the current one upwards, that is a store or has one in storage/.
//
// Way enumerates how a command finds a store, and Check, which each way uses, decides by the owner
// of the files at a path and by the links that lead to it whether the store may be used.
//
// A store that was found and belongs to another user is skipped, and the search continues above it:
// in a folder that others can write to, such as /tmp, anyone can leave a store, whose settings,
// limits and memories would then be treated as the user's own. A store that the user names is
// opened in any case. Root uses stores of root and, under sudo, those of the user who called sudo.
//
// Above finds the store that contains a path: no other store is created there.
package locate
