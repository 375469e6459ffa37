package vfs

// Life is the state of a process, as far as it is known.
type Life int

// The states of a process.
const (
	Unknown Life = iota // the process is in another container, or the system does not report it
	Alive
	Dead
)

// LifeOf returns the state of the process that is identified by pid and birth (see Host). self identifies the
// calling process. The result Dead is certain: no process has this id now, or another process has it.
func LifeOf(self Host, pid int, birth uint64) Life {
	if birth == 0 || self.Birth == 0 || birth>>32 != self.Birth>>32 {
		return Unknown // the number belongs to another pid namespace, and means another process here
	}
	if pid == self.PID {
		if birth == self.Birth {
			return Alive
		}
		return Dead
	}
	began, life := started(pid)
	if life == Alive && uint32(began) != uint32(birth) {
		return Dead
	}
	return life
}

// Elsewhere reports whether birth is from another PID namespace than self, the calling process. There, the same
// process id belongs to another process. Elsewhere returns false if the namespace is unknown.
func Elsewhere(self Host, birth uint64) bool {
	return birth != 0 && self.Birth != 0 && birth>>32 != self.Birth>>32
}

// birthOf returns a number that encodes the PID namespace place and the time at which a process began in it.
func birthOf(place string, began uint64) uint64 {
	h := uint32(2166136261) // FNV-1a
	for i := range len(place) {
		h = (h ^ uint32(place[i])) * 16777619
	}
	return uint64(h|1)<<32 | uint64(uint32(began))
}
