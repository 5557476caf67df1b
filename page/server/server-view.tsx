export function ServerView() {
  return (
    <div class="view page">
      <h1 tabIndex={-1}>Server</h1>
    </div>
  );
}
