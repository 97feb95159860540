# Every operation of replay --operations in the simulated order on its unit, with all its bytes.
NR == 1 { next }
{ n++; order[$14 + 1] = $1 + 0; at[$1 + 0] = $10 + 0; unit[$1 + 0] = $4
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
	exit bad || n < 20
}
