// Package projectcmd decides which project a server of memctl mcp serves, and has the command memctl project.
//
//	place      the folder that a project belongs to, found without running git
//	registry   the ids of projects, by place and by name
//	project    memctl project list | join | move | merge
//
// # Place
//
// The place of a project is the git common directory of the folder, so that all worktrees have one project. Files in
// a repository decide nothing that others could forge: a file .git that names a folder elsewhere is followed only if
// that folder names the file in turn, and, for a worktree, lies below worktrees/ of the common directory. Otherwise the
// folder that has the .git is the place. A .git of another user is passed over.
//
// Without git the place is the root that the client offers; a root that is the home folder or the top of a file system
// is none. A folder that no client offers as a root and that is not in a repository has no place, and so no project.
//
// # Registry
//
// Below projects/ in the user's state folder, each a JSON object that is written once, whole (renamed into place by a
// link, so that of two processes one wins), with mode 0600:
//
//	place-<32 hex digits of the sha256 of the path>.json              {"project":"prj-…","name":"…","place":"…"}
//	name-<32 hex digits of the sha256 of the name>.json               {"project":"prj-…","name":"…","place":"…"}
//	join-<32 hex digits of the sha256 of name, NUL, path>.json        {"project":"prj-…","name":"…","place":"…"}
//
// place- gives the project of a folder for which no name is given. name- gives the id of a project that --project
// names, and join- a folder from which this name may be used: the first folder at once, another one after memctl
// project join. So a repository whose configuration names the project of another one gets an error. The state
// folder belongs to a
// user and a machine; ids are random, and a store that is copied elsewhere keeps its projects apart.
//
// # Folders that change
//
// A folder that was moved has another place, and so a new project: memctl project move gives it the old one. A copy
// has another place too, and does not get the memories of the original. A submodule is a project of its own.
package projectcmd
