// Package projectcmd decides which project a server of memctl mcp serves, and has the command memctl project.
//
//	place      the folder that identifies a project, found without running git
//	registry   the ids of projects, by place and by name
//	project    memctl project list | join | move | merge
//
// # Place
//
// The place of a project is the git common directory of the folder, so that all worktrees of a repository have
// one project. No file in a repository can forge the place of another project: a file .git that names a folder
// elsewhere is followed only if that folder names the file in turn and, for a worktree, is below worktrees/ of
// the common directory. Otherwise the place is the folder that contains the .git. A .git of another user is
// ignored.
//
// Without git, the place is the root that the client offers. A root that is the home folder or the top of a
// file system is not a place. A folder that is not in a repository, and that no client offers as a root, has no
// place, and so no project.
//
// # Registry
//
// The registry is the folder projects/ in the user's state folder. Each file there is a JSON object with mode
// 0600. It is written once, completely, under a temporary name, and then linked to its name, so that of two
// processes only one succeeds:
//
//	place-<32 hex digits of the sha256 of the path>.json              {"project":"prj-…","name":"…","place":"…"}
//	name-<32 hex digits of the sha256 of the name>.json               {"project":"prj-…","name":"…","place":"…"}
//	join-<32 hex digits of the sha256 of name, NUL, path>.json        {"project":"prj-…","name":"…","place":"…"}
//
// A place- file has the project of a folder for which no name is given. A name- file has the id of the project that
// --project names. A join- file permits a folder to use a name: for the first folder that uses the name the file is
// written at once; for any other folder memctl project join writes it. So a repository whose configuration names the
// project of another repository gets an error. The state folder belongs to one user on one machine. Ids of projects are
// random, so the projects of a store that is copied to another machine differ from those of that machine.
//
// # Folders that change
//
// A folder that was moved has another place, and so a new project: memctl project move gives it the old one. A
// copy has another place too, and does not get the memories of the original. A submodule is a project of its
// own.
package projectcmd
