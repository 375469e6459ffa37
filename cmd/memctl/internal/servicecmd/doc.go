// Package servicecmd is memctl service: it installs and removes a unit of systemd that runs
// memctl watch --adopt for one store.
//
// A unit belongs to a user (~/.config/systemd/user) or to the system (/etc/systemd/system). It is
// named after the path of the store, as systemd-escape names paths, and has that path and the path of
// memctl in it; a unit of the system runs as the owner of the store, so that the files stay readable
// for the programs of that user. The unit of the packages, packaging/systemd, is a template that gets
// the path from the name of its instance; TestPackagedUnit makes it from the same text.
//
// # Invariants
//
// Only a file that begins with the line mark is replaced or removed. Whatever is in a path, a unit
// has no line and no directive more than drawn here: control characters are refused, and what systemd
// would expand or take for the end of a word is escaped.
package servicecmd
