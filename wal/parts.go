package wal

// FileLog itself has what every user of the log needs: appending, reading, positions, the checkpoint, features,
// flush.lock. What only some users need is a method of one of these types. Each is a view of the log, without
// state of its own, and is valid as long as the log is.

// Archive is the part of the log that is kept only as history: the copies of older segments in wal/archive/. Its
// methods are for the flusher, which releases segments into the archive, for a backup, which prevents this for a time,
// and for a repair, which copies segments and mends damaged copies.
type Archive struct{ l *FileLog }

// Archive returns the archive of the log.
func (l *FileLog) Archive() Archive { return Archive{l} }

// Purges is the record of purges: it has, for all processes of a store, which purges are running or have failed. Its
// method Erase erases the purged entries from the log.
type Purges struct{ l *FileLog }

// Purges returns the record of the log's purges; its method Begin begins a purge.
func (l *FileLog) Purges() Purges { return Purges{l} }

// Processes is the list of processes that have the log open for writing. One of these processes, the leader, watches
// the document files for all of them.
type Processes struct{ l *FileLog }

// Processes returns the list of processes that have the log open for writing.
func (l *FileLog) Processes() Processes { return Processes{l} }

// Folder is the folder in which the log was opened. Its methods detect whether the log was removed or replaced.
// AwaitRescue and Leave then wait until this process has saved the entries that would be lost and has released the
// folder.
type Folder struct{ l *FileLog }

// Folder returns the folder of the log.
func (l *FileLog) Folder() Folder { return Folder{l} }

// Pace has the speeds that writers and flushers measure, and shares them between all processes.
type Pace struct{ l *FileLog }

// Pace returns the pace of the log.
func (l *FileLog) Pace() Pace { return Pace{l} }

// Clock is the clock by which working memory expires: it relates the wall clock to the uptime of the machine,
// for all processes.
type Clock struct{ l *FileLog }

// Clock returns the clock by which working memory expires.
func (l *FileLog) Clock() Clock { return Clock{l} }

// Notes has facts about the store's files that processes record for each other in the shared page: whether the files
// can be trusted, whether a killed process has left files, and how often the index was rebuilt.
type Notes struct{ l *FileLog }

// Notes returns the notes on the shared page.
func (l *FileLog) Notes() Notes { return Notes{l} }
