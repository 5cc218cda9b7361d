create table app.bookings (
  room int not null,
  during int4range not null,
  note varchar(20) collate "C",
  constraint bookings_no_overlap exclude using gist (during with &&),
  constraint bookings_room_key unique nulls not distinct (room, note)
) with (fillfactor = 80);
alter table app.bookings alter column note set storage external, alter column room set statistics 500;
alter table app.bookings replica identity full;
