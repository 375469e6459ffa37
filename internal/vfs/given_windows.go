package vfs

const nonblock = 0 // no open of a file waits on this system
