// Command generate writes the files that a package of memctl has in addition to the program: the manual pages,
// compressed as Debian requires, the completion scripts for four shells, the licenses of everything that is
// linked into the program, and a folder for the image.
//
//	go run ./packaging/generate [-release VERSION] [-time SECONDS] FOLDER
//
//	FOLDER/man/memctl.1.gz, memctl-put.1.gz, …
//	FOLDER/completions/memctl.bash, memctl.fish, memctl.ps1, _memctl
//	FOLDER/THIRD-PARTY-LICENSES, of the standard library and of each module
//	FOLDER/store.tar, the folder /store of the image, with its owner
//
// memctl itself writes them, and is built first, so that they match the program. .goreleaser.yaml runs this
// command before it builds.
//
// # Invariants
//
// The same sources, version and time give the same bytes: pages have the day of -time, compressed files contain
// neither names nor times. FOLDER is replaced; it must be missing, empty or have been written by this command.
package main
