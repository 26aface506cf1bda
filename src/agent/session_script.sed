# Turns session.bash into the lines of a C string, without what only readers need.
s/^[[:space:]]*//
/^#/d
/^$/d
s/[\\"]/\\&/g
s/.*/"&\\n"/
