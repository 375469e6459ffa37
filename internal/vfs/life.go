package vfs

// Life is what is known of a process.
type Life int

// What is known of a process.
const (
	Unknown Life = iota // of another container, or this system does not say
	Alive
	Dead
)

// LifeOf reports whether the process that called itself pid and birth (see Host) is
// there. It is Dead only if that is certain: its number is unused, or used by
// another one by now. own is the process that asks.
func LifeOf(own Host, pid int, birth uint64) Life {
	if birth == 0 || own.Birth == 0 || birth>>32 != own.Birth>>32 {
		return Unknown // numbers of another place mean other processes here
	}
	if pid == own.PID {
		if birth == own.Birth {
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

// Elsewhere reports whether the process of a birth has its number from another place than own: there it is another
// process. False where that is not known.
func Elsewhere(own Host, birth uint64) bool {
	return birth != 0 && own.Birth != 0 && birth>>32 != own.Birth>>32
}

// birthOf packs where process numbers come from and when a process began.
func birthOf(place string, began uint64) uint64 {
	h := uint32(2166136261) // FNV-1a
	for i := range len(place) {
		h = (h ^ uint32(place[i])) * 16777619
	}
	return uint64(h|1)<<32 | uint64(uint32(began))
}
