package crash

import (
	"errors"
	"io/fs"
	"slices"
	"sync"
	"syscall"
	"time"
)

// inodeCost is the number of bytes that a file counts against the capacity besides its pages.
const inodeCost = 512

// ErrWouldBlock is returned to a process made with NonBlocking by operations that would otherwise wait.
var ErrWouldBlock = errors.New("crash: would block")

// errKilled is the error of operations of a process that was killed.
var errKilled = errors.New("crash: the process was killed or the machine went down")

// Disk is the simulated disk of a machine during one boot. Crash returns the Disk of the next boot.
type Disk struct {
	mu       sync.Mutex
	changed  *sync.Cond // a lock or a lease was released
	boot     uint64
	gen      *generation
	seq      uint64 // sequence number of the last change
	ids      uint64 // number of the last inode
	root     *inode
	pending  []*step // changes of names, in order
	settled  int     // number of steps in pending that are durable
	wakes    uint64  // counts changes that waiters wait for
	dirty    map[*inode]struct{}
	freeInos []uint64
	nextIno  uint64
	ghosts   []*page // pages of removed files, the newest last
	used     int64
	capacity int64
	procs    map[int]*Process
	nextPID  int
	clock    func() time.Time
	failSync func(op, name string) error
	lacks    Lacks

	keepsFreed bool
	freed      []Piece
}

// Lacks lists what a file system does not support. Such calls return errors.ErrUnsupported.
type Lacks struct {
	Exchange, Link, Lease, Barrier, Unnamed bool
}

// SetLacks removes capabilities from the volume, in this boot and in later ones.
func (d *Disk) SetLacks(l Lacks) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lacks = l
}

func (d *Disk) unsupportedIf(lacking bool) error {
	if lacking {
		return errors.ErrUnsupported
	}
	return nil
}

// New returns an empty disk with a root folder and unlimited capacity.
func New() *Disk { return newDisk(1) }

func newDisk(boot uint64) *Disk {
	d := &Disk{
		boot: boot, gen: new(generation), nextIno: 2, nextPID: 100,
		dirty: map[*inode]struct{}{}, procs: map[int]*Process{},
	}
	d.changed = sync.NewCond(&d.mu)
	d.root = d.newInode(fs.ModeDir | 0o755)
	d.root.nlink = 1
	return d
}

// SetCapacity limits the disk to a number of bytes; 0 is no limit. Each file counts 512 bytes and its pages of 4 KiB.
func (d *Disk) SetCapacity(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.capacity = bytes
}

// Used returns the bytes that count against the capacity.
func (d *Disk) Used() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.used
}

// SetClock sets the source of modification times. Without it each change is a microsecond later than the previous one.
func (d *Disk) SetClock(now func() time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.clock = now
}

// FailSync sets a function that is called for each sync, and makes the sync fail by returning an error. op is "sync",
// "datasync", "syncdir" or "barrier". The data of a failed sync is lost as the package comment describes; a failed
// "syncdir" leaves the entries pending. nil removes the function. The function must not use the disk.
func (d *Disk) FailSync(f func(op, name string) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failSync = f
}

// DropCaches drops clean pages: afterwards data that a failed sync lost can no longer be read.
func (d *Disk) DropCaches() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for in := range d.dirty {
		in.dropLost(d)
	}
}

// Kill ends a process: its locks, leases, files and mappings are released; what it wrote stays in the cache.
func (d *Disk) Kill(p *Process) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.kill(p)
}

func (d *Disk) kill(p *Process) {
	p.dead = true
	delete(d.procs, p.pid)
	for _, h := range p.locks {
		h.drop()
	}
	for len(p.files) > 0 {
		d.forget(p.files[len(p.files)-1])
	}
	p.locks = nil
	d.wake()
}

// Held is a lock with its holder, for a report of a deadlock.
type Held struct {
	Path string
	PID  int
	Name string // name of the process
	Mode string
}

// Locks returns the locks that are held, sorted by path and process number.
func (d *Disk) Locks() []Held {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []Held
	for _, p := range d.procs {
		for _, h := range p.locks {
			if h.on != nil {
				list = append(list, Held{h.name, p.pid, p.name, modeName(h.mode)})
			}
		}
	}
	slices.SortFunc(list, func(a, b Held) int {
		if a.Path != b.Path {
			if a.Path < b.Path {
				return -1
			}
			return 1
		}
		return a.PID - b.PID
	})
	return list
}

func (d *Disk) tick() uint64 {
	d.seq++
	return d.seq
}

func (d *Disk) now() time.Time {
	if d.clock != nil {
		return d.clock()
	}
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(d.seq) * time.Microsecond)
}

// charge counts n more bytes as used, or returns an error if the capacity does not allow that.
func (d *Disk) charge(n int64) error {
	if d.capacity > 0 && d.used+n > d.capacity {
		return syscall.ENOSPC
	}
	d.used += n
	return nil
}

// wake makes waiting operations try again, because a lock or a lease was released.
func (d *Disk) wake() {
	d.wakes++
	d.changed.Broadcast()
}

// Wakes returns a count that increases whenever an operation that got ErrWouldBlock may succeed. While the count is
// unchanged, a retry cannot succeed.
func (d *Disk) Wakes() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.wakes
}
