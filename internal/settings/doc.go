// Package settings is a store's config.json: what belongs to the store and not to a process.
//
// The file is one JSON object; its members are the fields of Config. A folder is a store by
// the member "varve", the format's number. Members that this program does not know stay as
// they are; one that is not valid has its default, and is told. Nothing that is needed to
// decode the store is in it, so a store without the file is a store all the same.
//
// What holds is behind one atomic pointer (Settings.Now), so that a put costs no lock. Every
// process looks for a change of the file once a second, by its size, time and inode; changing it
// takes a wal.Held.
package settings
