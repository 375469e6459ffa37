package servecmd

// connections returns how many connections a server may have open. 0: the default of the server.
func connections() int { return 0 }
