// Package settings is a store's config.json: the settings of the store, as opposed to those of a
// process.
//
// The file is one JSON object; its members are the fields of Config. The member "varve", the number
// of the format, makes a folder a store. Members that this program does not know are kept
// unchanged; an invalid member has its default, and is reported. Nothing in the file is needed to
// decode the store, so a store without the file is still a store.
//
// An invalid or missing file makes the settings unknown (Settings.Unknown) until it is right: reading
// and writing continue with the last good ones, or with its valid members and the defaults, but
// nothing is removed by them. No history is cut, nothing is evicted or swept, no missing file is
// treated as a deletion, no index backup is replaced. That a store has had the file is in its
// checkpoint.
//
// The settings in force are behind one atomic pointer (Settings.Now), so that a put takes no lock.
// Every process checks once a second whether the file has changed, by its size, time and inode;
// changing it takes a wal.Held.
package settings
