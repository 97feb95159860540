# Every operation of replay --operations with all its bytes, and in the order in which they really began on its unit: simulated, none
# begins before the one before it. least: so many there are.
NR == 1 { next }
{ n++; copies += $2 == "copy"; kernels += $2 == "kernel"; order[$14 + 1] = $1 + 0; at[$1 + 0] = $10 + 0; unit[$1 + 0] = $4
  if ($9 - $8 > 0.51 || $8 - $9 > 0.51) { print "operation " $1 " moved " $9 " bytes of " $8; bad = 1 }
  if ($13 < $12) { print "operation " $1 " ended before it began"; bad = 1 } }
END {
	for (i = 1; i <= n; i++) {
		id = order[i]; u = unit[id]
		if (u == "") continue
		if (u in last && (at[id] < at[last[u]] || (at[id] == at[last[u]] && id < last[u]))) {
			print "on " u ", " id " came behind " last[u]; bad = 1
		}
		last[u] = id
	}
	print n " operations, " copies + 0 " copies, " kernels + 0 " kernels"
	exit bad || n < least || !kernels
}
