// Package locate finds the store that a command is about when none was named: the nearest folder,
// from the current one upwards, that is a store or has one in storage/.
//
// Way has every way in which a command finds a store, and Check, which each of them passes, decides by
// the owner of what stands there and by the links that lead there whether it is used.
//
// A store that was found and belongs to another user is passed over, and the search continues
// above it: in a folder that others can write, such as /tmp, anyone can leave a store, whose
// settings, limits and memories would then be taken for the user's own. A store that the user names
// is opened as it is. Root uses stores of root and, under sudo, those of the user who called
// sudo.
//
// Above finds a store in which a path lies: no other store is made there.
package locate
