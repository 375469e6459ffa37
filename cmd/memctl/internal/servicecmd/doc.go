// Package servicecmd has the command memctl service: it installs and removes a systemd unit that
// runs memctl watch --adopt for one store.
//
// A unit belongs to a user (~/.config/systemd/user) or to the system (/etc/systemd/system). It is
// named after the path of the store, as systemd-escape names paths, and has that path and the path
// of memctl in it; a unit of the system runs as the owner of the store, so that the files stay
// readable for the programs of that user. The unit of the packages, packaging/systemd, is a
// template that gets the path from the name of its instance; TestPackagedUnit generates it from the
// same text.
//
// # Invariants
//
// Only a file that begins with the line mark is replaced or removed. No path can add a line or a
// directive to a unit: control characters are refused, and characters that systemd would expand or
// treat as the end of a word are escaped.
package servicecmd
