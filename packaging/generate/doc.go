// Command generate writes what a package of memctl has besides the program: the manual pages, packed
// as Debian wants them, the completion scripts of four shells, the licences of what is linked into
// the program, and a folder for the image.
//
//	go run ./packaging/generate [-release VERSION] [-time SECONDS] FOLDER
//
//	FOLDER/man/memctl.1.gz, memctl-put.1.gz, …
//	FOLDER/completions/memctl.bash, memctl.fish, memctl.ps1, _memctl
//	FOLDER/THIRD-PARTY-LICENSES, of the standard library and of each module
//	FOLDER/store.tar, the folder /store of the image, with its owner
//
// They are made by memctl itself, which is built first: what is packed is what the program has.
// .goreleaser.yaml runs this before it builds.
//
// # Invariants
//
// The same sources, version and time give the same bytes: pages have the day of -time, packed files
// have neither names nor times in them. FOLDER is replaced; it must be missing, empty or have been
// written by this command.
package main
