package wal

// FileLog itself has what every user of the log needs: appending, reading, positions, the checkpoint, features,
// flush.lock. What only some users need is a method of one of these types. Each is a view of the log, without
// state of its own, and is valid as long as the log is.

// Archive is the part of a log that is kept beyond the needed segments: the copies in wal/archive/, and the release of
// segments into it. The flusher releases segments, a backup holds them, and repair copies and mends them.
type Archive struct{ l *FileLog }

// Archive returns the archive of the log.
func (l *FileLog) Archive() Archive { return Archive{l} }

// Purges is the state that the processes of a store share about purges: which are running or have failed. It also
// erases entries for a purge.
type Purges struct{ l *FileLog }

// Purges returns the purges of the log.
func (l *FileLog) Purges() Purges { return Purges{l} }

// Processes is the list of processes that have the log open for writing. One of them leads: it watches the files for
// all.
type Processes struct{ l *FileLog }

// Processes returns the processes that have the log open.
func (l *FileLog) Processes() Processes { return Processes{l} }

// Folder is the folder in which the log was opened. It tracks whether the log is still there, and handles its
// removal.
type Folder struct{ l *FileLog }

// Folder returns the folder of the log.
func (l *FileLog) Folder() Folder { return Folder{l} }

// Pace is the information about the speed of writing and flushing that the writers and flushers of all processes
// share.
type Pace struct{ l *FileLog }

// Pace returns the pace of the log.
func (l *FileLog) Pace() Pace { return Pace{l} }

// Clock relates the time by which working memory expires to the uptime of the machine, for all processes.
type Clock struct{ l *FileLog }

// Clock returns the clock of the log.
func (l *FileLog) Clock() Clock { return Clock{l} }

// Notes are facts that the processes record for each other about the files of the store: whether the files can be
// trusted, what a killed process has left, and that the index was rebuilt.
type Notes struct{ l *FileLog }

// Notes returns the notes on the shared page.
func (l *FileLog) Notes() Notes { return Notes{l} }
